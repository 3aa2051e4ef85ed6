package org.apache.hadoop.io;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Set;
import java.nio.file.attribute.PosixFilePermission;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Stands before Hadoop's own class on the class path of a NodeManager of {@code nodewise cluster up --kerberos}, and of nothing else.
 *
 * <p>Hadoop's own refuses to load with Kerberos where libhadoop is missing, so that such a NodeManager shows no logs at all. With
 * libhadoop it also makes sure that a log belongs to the user of its container. This one does not: on a cluster of one machine all
 * containers run as the user of the daemons. Never put it on a cluster that several people use.
 */
public class SecureIOUtils {
    /** What is to be made is there already. */
    public static class AlreadyExistsException extends IOException {
        private static final long serialVersionUID = 1L;

        public AlreadyExistsException(String message, Throwable cause) {
            super(message, cause);
        }
    }

    public static RandomAccessFile openForRandomRead(File file, String mode, String owner, String group) throws IOException {
        return new RandomAccessFile(file, mode);
    }

    public static FSDataInputStream openFSDataInputStream(File file, String owner, String group) throws IOException {
        return FileSystem.getLocal(new Configuration()).getRaw().open(new Path(file.getPath()));
    }

    public static FileInputStream openForRead(File file, String owner, String group) throws IOException {
        return new FileInputStream(file);
    }

    public static FileOutputStream createForWrite(File file, int permissions) throws IOException {
        try {
            Files.createFile(file.toPath(), PosixFilePermissions.asFileAttribute(named(permissions)));
        } catch (FileAlreadyExistsException error) {
            throw new AlreadyExistsException(file + " is there already", error);
        }
        return new FileOutputStream(file);
    }

    /** The permissions that are set in a mode such as 0640: from others' right to execute up to the owner's to read. */
    private static Set<PosixFilePermission> named(int mode) {
        PosixFilePermission[] all = PosixFilePermission.values();
        Set<PosixFilePermission> found = EnumSet.noneOf(PosixFilePermission.class);
        for (int bit = 0; bit < all.length; bit++) {
            if ((mode >> bit & 1) == 1) {
                found.add(all[all.length - 1 - bit]);
            }
        }
        return found;
    }
}
